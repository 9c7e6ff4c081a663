"""What joins the stages: one file for each command, callable from Python."""
