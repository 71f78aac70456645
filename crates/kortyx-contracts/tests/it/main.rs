//! Tests of the public API: what is asked, what is stored and sent, which answers fit.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod builders;
#[cfg(test)]
mod contracts;
#[cfg(test)]
mod derive;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod unions;
#[cfg(test)]
mod values;
#[cfg(test)]
mod wire;
#[cfg(test)]
mod world;
