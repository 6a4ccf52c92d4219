//! Objects by their names, folders and patterns.
//!
//! A store has keys and no folders. Here, a slash ends the name of a folder, as in a file system.

use std::path::Path;
use std::sync::Arc;

use futures::TryStreamExt;
use glob::{MatchOptions, Pattern};
use merganser_sort::run::magic::has_name_of_table;
use object_store::path::Path as Key;
use object_store::{GetOptions, ListResult, ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::ObjectsError;
use crate::address::{ObjectAddress, StoreKind};
use crate::read::FoundObject;
use crate::requests::{NoAnswer, Requests};
use crate::sentence::reason;

/// As in a file system: a star is part of one name.
const IN_ONE_NAME: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// Looks for the objects of one address.
pub(crate) struct Finder<'a> {
    pub(crate) requests: &'a Arc<Requests>,
    pub(crate) store: &'a Arc<dyn ObjectStore>,
    pub(crate) address: &'a ObjectAddress,
}

impl Finder<'_> {
    /// All objects that the address names, in order.
    pub(crate) fn find(&self) -> Result<Vec<FoundObject>, ObjectsError> {
        let key = &self.address.key;
        if self.address.kind == StoreKind::Http {
            return Ok(vec![self.of_web()?]);
        }
        let mut found = if key.contains(['*', '?', '[']) {
            let mut found = Vec::new();
            let segments: Vec<_> = key.trim_end_matches('/').split('/').collect();
            self.expand("", &segments, &mut found)?;
            found
        } else if self.address.is_folder() {
            self.in_folder(key.trim_end_matches('/'))?
        } else {
            match self.object(key)? {
                Some(object) => return Ok(vec![self.found(object)]),
                None => self.in_folder(key)?,
            }
        };
        if found.is_empty() {
            return Err(ObjectsError::NoTables { name: self.address.shown() });
        }
        // As the names of files are ordered: folder by folder.
        found.sort_by(|a, b| a.location.as_ref().split('/').cmp(b.location.as_ref().split('/')));
        found.dedup_by(|a, b| a.location == b.location);
        Ok(found.into_iter().map(|object| self.found(object)).collect())
    }

    fn found(&self, object: ObjectMeta) -> FoundObject {
        let address = self.address.with_key(object.location.as_ref());
        FoundObject::new(self.requests, self.store, &address, object)
    }

    /// The file of a web address. It is asked for its first byte, since the signature of an address may allow nothing else.
    fn of_web(&self) -> Result<FoundObject, ObjectsError> {
        if self.address.is_folder() {
            return Err(self
                .address
                .refused("is a folder of a server, whose files can't be listed; name each file"));
        }
        let key = Key::from_url_path(&self.address.key).map_err(|_| {
            self.address.refused("has a name with escapes that are no text, or with empty names")
        })?;
        let (store, at) = (Arc::clone(self.store), key.clone());
        let first = self.ask(async move {
            let options = GetOptions::new().with_range(Some(0..1));
            store.get_opts(&at, options).await.map(|found| found.meta)
        });
        let object = match first {
            Err(ObjectsError::Store { why, .. }) if why.contains("416 ") => {
                let name = self.address.shown();
                return Err(ObjectsError::Store { name, why: "is empty".to_owned() });
            }
            first => first?,
        };
        Ok(FoundObject::new(self.requests, self.store, self.address, object))
    }

    /// The object of a key, if there is one.
    fn object(&self, key: &str) -> Result<Option<ObjectMeta>, ObjectsError> {
        let (store, key) = (Arc::clone(self.store), self.key(key)?);
        self.ask(async move {
            match store.head(&key).await {
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                found => found.map(Some),
            }
        })
    }

    /// All tables in a folder and in its folders, without those whose names other programs leave out.
    fn in_folder(&self, folder: &str) -> Result<Vec<ObjectMeta>, ObjectsError> {
        let mut objects = self.all_in(folder)?;
        let inner = |object: &ObjectMeta| {
            let key = object.location.as_ref();
            let rest = key.strip_prefix(folder).unwrap_or(key).trim_start_matches('/');
            !rest.split('/').any(is_left_out) && has_name_of_table(Path::new(key))
        };
        objects.retain(inner);
        Ok(objects)
    }

    fn all_in(&self, folder: &str) -> Result<Vec<ObjectMeta>, ObjectsError> {
        let (store, folder) = (Arc::clone(self.store), self.key(folder)?);
        self.ask(async move { store.list(Some(&folder)).try_collect().await })
    }

    /// The objects in `folder` that match a pattern, name by name.
    fn expand(
        &self,
        folder: &str,
        segments: &[&str],
        found: &mut Vec<ObjectMeta>,
    ) -> Result<(), ObjectsError> {
        let [segment, rest @ ..] = segments else { return Ok(()) };
        let pattern = |text: &str| {
            Pattern::new(text).map_err(|_| {
                self.address.refused("is no pattern: a [ has no ], or ** is no whole name")
            })
        };
        let joined = |name: &str| match folder {
            "" => name.to_owned(),
            folder => format!("{folder}/{name}"),
        };
        if *segment == "**" {
            let whole = pattern(&joined(&segments.join("/")))?;
            let all = self.all_in(folder)?.into_iter();
            found.extend(
                all.filter(|object| whole.matches_with(object.location.as_ref(), IN_ONE_NAME)),
            );
            return Ok(());
        }
        if !segment.contains(['*', '?', '[']) && !rest.is_empty() {
            return self.expand(&joined(segment), rest, found);
        }
        let one = pattern(segment)?;
        let fits =
            |key: &Key| key.filename().is_some_and(|name| one.matches_with(name, IN_ONE_NAME));
        let (store, prefix) = (Arc::clone(self.store), self.key(folder)?);
        let listed = self.ask(async move { store.list_with_delimiter(Some(&prefix)).await })?;
        let ListResult { common_prefixes, objects, .. } = listed;
        for inner in common_prefixes.iter().filter(|inner| fits(inner)) {
            if rest.is_empty() {
                found.extend(self.in_folder(inner.as_ref())?);
            } else {
                self.expand(inner.as_ref(), rest, found)?;
            }
        }
        if rest.is_empty() {
            found.extend(objects.into_iter().filter(|object| fits(&object.location)));
        }
        Ok(())
    }

    /// Whether there is any object in a folder.
    pub(crate) fn has_objects(&self) -> Result<bool, ObjectsError> {
        let folder = self.key(self.address.key.trim_end_matches('/'))?;
        let store = Arc::clone(self.store);
        self.ask(
            async move { store.list(Some(&folder)).try_next().await.map(|first| first.is_some()) },
        )
    }

    fn key(&self, key: &str) -> Result<Key, ObjectsError> {
        key_of(self.address, key)
    }

    fn ask<T: Send + 'static>(
        &self,
        request: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<T, ObjectsError> {
        answered(self.requests.run(request), self.address)
    }
}

/// The key of an object of a bucket.
pub(crate) fn key_of(address: &ObjectAddress, key: &str) -> Result<Key, ObjectsError> {
    Key::parse(key).map_err(|_| address.refused("has a name that stores of objects do not take"))
}

/// What a store says of an object.
pub(crate) fn answered<T>(
    answer: Result<object_store::Result<T>, NoAnswer>,
    address: &ObjectAddress,
) -> Result<T, ObjectsError> {
    let store = |why| ObjectsError::Store { name: address.shown(), why };
    match answer {
        Err(NoAnswer::Cancelled) => Err(ObjectsError::Cancelled),
        Err(NoAnswer::Late) => Err(store("does not answer in time".to_owned())),
        Ok(answer) => answer.map_err(|error| store(reason(&error))),
    }
}

/// Whether other programs leave a name of a folder's content out.
fn is_left_out(name: &str) -> bool {
    name.starts_with('.') || name.starts_with('_') && !name.contains('=')
}
