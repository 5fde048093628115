"""Completeness: what was asked, what came, and what is proved to be complete.

The words of this package:

- A *subject* is what a request is about: an account, a builder, a validator, a dex, or a coin and
  an amount.
- *Coverage* is the complete ranges of a history.
- A service states the *completeness* of an answer in headers.
- A *remark* is a sentence about data that a request or its answer lacks, or may lack.
- A *certificate* is the counts and the evidence that a pull is complete.
- *Provenance* is the dict in ``frame.attrs["toolkit"]``: the request, the source, the certificate
  and the remarks. Provenance of several frames is merged in one place, `merge`.
"""
