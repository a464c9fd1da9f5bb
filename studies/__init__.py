"""The studies behind the figures in docs/. They use the product, which does not know them; no wheel has them."""
