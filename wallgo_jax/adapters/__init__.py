"""The game behind the interfaces of other libraries; each needs an extra."""
