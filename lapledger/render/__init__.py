"""What people see: tables, pictures and lines. The only package that prints."""
