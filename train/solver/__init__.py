"""Small boards solved exactly."""
