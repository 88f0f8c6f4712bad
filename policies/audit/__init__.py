"""The audit: looks for keys everywhere a stack leaves traces, and says where it looked."""
