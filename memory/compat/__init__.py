"""Routes that speak other systems' protocols, so that their clients work by changing an address."""
