//! How apply meets each kind of failure.
