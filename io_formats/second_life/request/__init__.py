"""Bodies of the requests of an upload: the fee request and the upload request."""
