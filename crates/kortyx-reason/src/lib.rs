//! Reasoning with a model inside a node.
//!
#![doc = include_str!("../README.md")]

pub mod partial;
