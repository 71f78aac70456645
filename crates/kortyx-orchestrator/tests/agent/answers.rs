//! Answers: what is accepted, what is refused, and what a refusal costs.
