//! What every kind of AWS object says about itself.

use super::listing::{ListingPosition, PartOf};
use super::{Cloud, Tags};
use engine::{Id, Part, Ref, Text};
use serde::Serialize;

/// Looks up an attribute of another resource: `(id, attribute) -> value`, if known by now.
pub type AttrLookup<'a> = &'a dyn Fn(&Id, &str) -> Option<String>;

/// Gives a reference its new name, or back as it is.
pub type Rename<'a> = &'a dyn Fn(&Ref) -> Ref;

/// A kind's place in [`Cloud`]. Implemented by the table of kinds.
pub trait Variant: Sized + Into<Cloud> {
    /// The object, if it is of this kind.
    fn of(cloud: &Cloud) -> Option<&Self>;
}

/// What every kind says about itself. What follows from that has a body here, and no kind replaces it: [`Kind::id`],
/// [`Kind::refs`], [`Kind::with_refs`], [`Kind::late`], [`Kind::resolved`].
pub trait Kind: Variant + Clone + std::fmt::Debug + PartialEq + Serialize {
    /// Terraform's type without `aws_`.
    const TYPE: &'static str;

    /// Where its objects stand in a listing.
    const LISTING_POSITION: ListingPosition;

    /// A create of it that dies half-way could be duplicated (see [`engine::Resource::needs_journal`]).
    const JOURNALED: bool = false;

    /// See [`engine::Resource::holds_data`].
    const HOLDS_DATA: bool = false;

    /// See [`engine::Resource::can_be_remade`].
    const CAN_BE_REMADE: bool = true;

    /// What cannot change in place is replaced by the next of a series. Objects of such a kind have [`Kind::tags_mut`],
    /// and say what [`Kind::can_become`] what and how to [`Kind::move_in_series`].
    const HAS_SUCCESSORS: bool = false;

    /// Its logical name, unique within the cluster and kind.
    fn name(&self) -> String;

    /// The references it holds. Who changes one calls [`Kind::refs_changed`].
    fn refs_mut(&mut self) -> Vec<&mut Ref>;

    /// Texts that can have late values.
    fn texts_mut(&mut self) -> Vec<&mut Text> {
        Vec::new()
    }

    /// Restores what follows from references: the order of sets, names that contain theirs.
    fn refs_changed(&mut self) {}

    /// Its tags; `None`: the kind has none, or has them in a list (Auto Scaling groups).
    fn tags_mut(&mut self) -> Option<&mut Tags>;

    /// The object that it is listed as a part of: a rule belongs to its security group. `None`: it is listed by itself.
    fn part_of(&self) -> Option<PartOf> {
        None
    }

    /// What matters about it, in a few words; empty where its name says it.
    fn describe(&self) -> String {
        String::new()
    }

    /// See [`engine::Resource::refuses`].
    fn refuses(&self, _have: &Self) -> Option<String> {
        None
    }

    /// See [`engine::Resource::accepting`].
    #[must_use]
    fn accepting(&self, _have: &Self) -> Self {
        self.clone()
    }

    /// See [`engine::Resource::attr_changes`].
    fn attr_changes(&self, _have: &Self, _attribute: &str) -> bool {
        false
    }

    /// True if AWS can turn it into `want` in place. Asked of kinds with successors.
    fn can_become(&self, _want: &Self) -> bool {
        true
    }

    /// Takes the names that belong to a place (from 1) of the series whose first member has the name `base`. Tags follow
    /// elsewhere. Asked of kinds with successors.
    fn move_in_series(&mut self, _base: &str, _revision: u32) {}

    fn id(&self) -> Id {
        Id::new(Self::TYPE, self.name())
    }

    /// The references it holds.
    fn refs(&self) -> Vec<Ref> {
        let mut copy = self.clone();
        copy.refs_mut().into_iter().map(|one| one.clone()).collect()
    }

    /// Itself with every reference renamed, late values included.
    #[must_use]
    fn with_refs(&self, rename: Rename<'_>) -> Self {
        let mut renamed = self.clone();
        for reference in renamed.refs_mut() {
            *reference = rename(reference);
        }
        for text in renamed.texts_mut() {
            *text = rename_text(text, rename);
        }
        renamed.refs_changed();
        renamed
    }

    /// Resources whose late attributes it waits for.
    fn late(&self) -> Vec<Id> {
        let mut copy = self.clone();
        let texts = copy.texts_mut().into_iter();
        texts.flat_map(|text| text.needs()).collect()
    }

    /// See [`engine::Resource::resolved`].
    #[must_use]
    fn resolved(&self, attr: AttrLookup<'_>) -> Self {
        let mut resolved = self.clone();
        for text in resolved.texts_mut() {
            *text = text.resolved(attr);
        }
        resolved
    }
}

/// The text with its late values taken from the renamed resources.
fn rename_text(text: &Text, rename: Rename<'_>) -> Text {
    Text::from_parts(text.parts().iter().map(|part| match part {
        Part::Literal(_) => part.clone(),
        Part::Late {
            kind,
            name,
            attribute,
        } => match rename(&Ref::own(&Id::new(kind, name.clone()))) {
            Ref::Own { kind, name } => Part::Late {
                kind,
                name,
                attribute: attribute.clone(),
            },
            Ref::Given(_) => part.clone(),
        },
    }))
}
