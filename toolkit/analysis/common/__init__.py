"""What the helpers of all topics share."""
