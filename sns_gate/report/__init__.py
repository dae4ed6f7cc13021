"""A finished result as text or file; it decides nothing."""
