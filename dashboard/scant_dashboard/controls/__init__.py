"""Controls of a study's page: settings form, run bar, upload, run list, data panel."""
