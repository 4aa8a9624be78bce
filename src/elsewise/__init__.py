"""elsewise."""
