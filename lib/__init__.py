"""What the scripts in bin/ share: one module a noun."""
