"""Helpers that turn fetched frames into results: frames in, frames out, nothing downloaded."""
