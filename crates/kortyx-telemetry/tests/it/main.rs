//! An agent, its reporter, and a receiver on this machine that checks every byte and misbehaves; and what is counted.

#[cfg(test)]
mod collector;
#[cfg(test)]
mod counted;
#[cfg(test)]
mod dashboard;
#[cfg(test)]
mod pressure;
#[cfg(test)]
mod receiver;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod sinks;
#[cfg(test)]
mod traces;
#[cfg(test)]
mod world;
