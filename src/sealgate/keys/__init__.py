"""API keys: secrets and where they are kept, what signs with them, and what the exchange says of them.

Pure:
key              a key that signs
signer           the raw signature of a message; a new algorithm goes here, its name in venues/scheme
signing_choices  how the `[signing]` table may have HMAC signatures written
bot              a client of the gateway
private_keys     from a stored private key to what signs, each mistake named
key_texts        PEM, DER, base64 and base58, decoded into memory that can be wiped
wrong_secrets    what people store in the place of a secret
key_health       when the exchange refuses a key, and when it is tried again
key_records      the exchange's list of keys
key_audit        what is wrong with the keys of an account

Shell:
key_breaker  refuses requests while a key is not accepted
parts        from the configuration to keys and bots: secrets are read here, once
sources      `file:`, `env:`, `cmd:`, `systemd:`, `keyring:`
files        whose file a secret must be
watch        notices that a secret file has changed
"""
