"""What client and service agreed: kinds, records, operations, requests, answers, paging."""
