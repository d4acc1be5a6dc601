"""The game behind the interfaces of other libraries; most need an extra."""
