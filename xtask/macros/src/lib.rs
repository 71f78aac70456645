//! Nothing but a manifest. Each feature set of a crate is checked together with this one, which switches on what any set asks of the
//! parsers under procedural macros. Without it nearly each set would ask for other features of them, and so build every macro, and
//! all that uses one, anew. Procedural macros run in the compiler: what a set's own code is built with stays what it asks for.
