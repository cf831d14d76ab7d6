"""Who comes, from where, and what they may speak to: cookies, origins, proxies, page sessions."""
