//! Plans from files.

use super::expand::said;
use super::same::same;
use cloud::Cloud;
use engine::Plan;

pub fn law(data: &[u8]) {
    let Ok(plan) = serde_json::from_slice::<Plan<Cloud>>(data) else {
        return;
    };
    let json = serde_json::to_string(&plan).expect("a plan has a JSON form");
    let again: Plan<Cloud> = serde_json::from_str(&json).expect("a plan is read back");
    same(&again, &plan, "a plan from its file");
    if let Err(error) = plan.check() {
        return said(&error);
    }
    let order = plan
        .dependency_order()
        .expect("a checked plan has an order");
    assert_eq!(order.len(), plan.steps.len());
}
