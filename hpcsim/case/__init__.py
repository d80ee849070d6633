"""Cases: the typed schema, reading with all errors at once, showing with comments."""
