"""What the lists, the restore and the sign-in cost at size, and the plans of every statement that they send."""
