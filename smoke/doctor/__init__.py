"""The doctor: what is wrong on a live stack, why, and what to do; read-only rights suffice."""
