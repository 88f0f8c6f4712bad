"""The pulse: few users, many, few again, and what the stack does about it (B9)."""
