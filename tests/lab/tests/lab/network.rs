//! Properties of the lab's network that scenarios depend on but cannot check: it lets no packet pass that AWS would drop.

mod agreement;
mod bench;
mod reach;
mod six;
mod worlds;
