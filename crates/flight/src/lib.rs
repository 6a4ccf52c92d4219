//! The network door of a node: sessions over Arrow Flight.
