"""The contract of client and service: kinds, records, operations, requests, answers, paging."""
