"""A release looked at: filtered, searched, counted."""
