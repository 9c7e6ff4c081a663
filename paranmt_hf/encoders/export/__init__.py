"""Export of encoders to formats of other libraries."""
