//! What is tested.

mod assistant;
mod deadline;
mod inbox;
mod keyboard;
mod logic;
mod looks;
mod lunch;
mod model;
mod order;
mod reload;
mod restart;
mod review;
mod tabs;
mod turns;
