"""GPz, sparse heteroscedastic GPs with uncertain inputs (Almosallam 2017)."""
