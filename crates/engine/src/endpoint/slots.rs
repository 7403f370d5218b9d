//! The associations of an endpoint, found by id without a search.

use super::{AssocId, Slot};
use crate::association::Workspace;

impl AssocId {
    /// Where its slot is.
    pub(super) fn place(self) -> u32 {
        self.0 as u32
    }
}

/// A place, and how often it has been taken: an id is never used twice.
#[derive(Default)]
struct Place {
    generation: u32,
    slot: Option<Box<Slot>>,
}

/// Boxed slots in a list with holes.
#[derive(Default)]
pub(super) struct Slots {
    places: Vec<Place>,
    free: Vec<u32>,
    /// The workspace of all associations while none has it, and the one that does.
    workspace: Option<Workspace>,
    workspace_with: Option<AssocId>,
}

impl Slots {
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub fn insert(&mut self, slot: Box<Slot>) -> AssocId {
        let at = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            (self.places.len() - 1) as u32
        });
        let place = &mut self.places[at as usize];
        place.slot = Some(slot);
        AssocId(u64::from(place.generation) << 32 | u64::from(at))
    }

    /// Whoever has this place.
    pub fn at(&self, at: u32) -> Option<&Slot> {
        self.places.get(at as usize)?.slot.as_deref()
    }

    /// Its id.
    pub fn id_at(&self, at: u32) -> AssocId {
        let generation = self.places.get(at as usize).map_or(0, |p| p.generation);
        AssocId(u64::from(generation) << 32 | u64::from(at))
    }

    pub fn get(&self, id: &AssocId) -> Option<&Slot> {
        let place = self.places.get(id.place() as usize)?;
        place.slot.as_deref().filter(|_| u64::from(place.generation) == id.0 >> 32)
    }

    pub fn get_mut(&mut self, id: &AssocId) -> Option<&mut Slot> {
        let place = self.places.get_mut(id.place() as usize)?;
        place.slot.as_deref_mut().filter(|_| u64::from(place.generation) == id.0 >> 32)
    }

    /// The slot for work on the association itself, which may need the workspace.
    #[inline]
    pub fn work_on(&mut self, id: &AssocId) -> Option<&mut Slot> {
        if self.workspace_with != Some(*id) {
            self.lend_workspace(id)?;
        }
        self.get_mut(id)
    }

    /// Gives the workspace to another one.
    #[inline(never)]
    fn lend_workspace(&mut self, id: &AssocId) -> Option<()> {
        self.get(id)?;
        self.fetch_workspace();
        let workspace = self.workspace.take().unwrap_or_default();
        self.workspace_with = Some(*id);
        self.get_mut(id)?.association.take_workspace(workspace);
        Some(())
    }

    /// Takes the workspace back from whoever has it.
    fn fetch_workspace(&mut self) {
        if let Some(with) = self.workspace_with.take()
            && let Some(s) = self.get_mut(&with)
        {
            self.workspace = Some(s.association.give_workspace());
        }
    }

    /// Before an association leaves its place.
    fn keep_workspace(&mut self, id: &AssocId) {
        if self.workspace_with == Some(*id) {
            self.fetch_workspace();
        }
    }

    pub fn remove(&mut self, id: &AssocId) -> Option<Box<Slot>> {
        self.get(id)?;
        self.keep_workspace(id);
        let at = id.place();
        let place = self.places.get_mut(at as usize)?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(at);
        place.slot.take()
    }

    /// Takes the slot out while its place is kept for [`Slots::put`].
    pub fn take(&mut self, id: &AssocId) -> Option<Box<Slot>> {
        self.get(id)?;
        self.keep_workspace(id);
        self.places.get_mut(id.place() as usize)?.slot.take()
    }

    /// Puts back what [`Slots::take`] gave.
    pub fn put(&mut self, id: &AssocId, slot: Box<Slot>) {
        if let Some(place) = self.places.get_mut(id.place() as usize) {
            place.slot = Some(slot);
        }
    }

    pub fn keys(&self) -> impl Iterator<Item = AssocId> + '_ {
        let taken = self.places.iter().enumerate().filter(|(_, p)| p.slot.is_some());
        taken.map(|(at, p)| AssocId(u64::from(p.generation) << 32 | at as u64))
    }
}
