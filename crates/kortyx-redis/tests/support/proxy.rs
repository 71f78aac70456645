//! A relay between a store and its server that counts, delays and cuts.
