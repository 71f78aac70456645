//! JSON that is still being written: what is told of it, on every split, and what is refused.

#[cfg(test)]
mod check;
#[cfg(test)]
mod client;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod outputs;
#[cfg(test)]
mod splits;
#[cfg(test)]
mod surroundings;
#[cfg(test)]
mod wrong;
