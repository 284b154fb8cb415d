"""Single sign-on by OpenID Connect 1.0: the code flow, with PKCE (RFC 7636), state and nonce."""
