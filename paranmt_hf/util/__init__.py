"""What every layer needs: files, work in progress, settings, progress, optional packages."""
