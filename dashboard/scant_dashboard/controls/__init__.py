"""What a visitor operates: settings form, run bar, upload, run list, data panel."""
