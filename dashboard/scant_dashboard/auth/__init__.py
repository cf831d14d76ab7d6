"""Who comes, from where, and what they may speak to: cookies, logins, origins, proxies."""
