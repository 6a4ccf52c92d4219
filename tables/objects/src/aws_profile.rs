//! The files in which AWS's tools keep credentials and settings: `~/.aws/credentials` and `~/.aws/config`.
//!
//! Read are keys, the region and the endpoint. Where a profile takes its credentials from something else (a role, a single
//! sign-on, a process), a sentence says how to hand them over.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use crate::ObjectsError;

/// The settings of a profile that count here.
#[derive(Default)]
pub(crate) struct AwsProfile {
    pub(crate) keys: Option<AwsKeys>,
    pub(crate) region: Option<String>,
    pub(crate) endpoint: Option<String>,
}

/// Keys of an account. They are printed nowhere.
#[derive(Clone)]
pub(crate) struct AwsKeys {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) token: Option<String>,
}

/// Settings that say that credentials come from elsewhere.
const ELSEWHERE: [&str; 6] = [
    "role_arn",
    "credential_process",
    "sso_session",
    "sso_start_url",
    "web_identity_token_file",
    "source_profile",
];

type Section = HashMap<String, String>;

/// Where profiles are looked for: the environment, which tests replace.
pub(crate) struct ProfilePlaces<'a> {
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    pub(crate) home: Option<PathBuf>,
}

impl ProfilePlaces<'_> {
    /// The profile that `AWS_PROFILE` names, or that of the name `default`, if there is one.
    ///
    /// # Errors
    /// A file that can't be read; a profile that is named and not there; one whose credentials come from elsewhere, if
    /// `wants_keys`.
    pub(crate) fn profile(&self, wants_keys: bool) -> Result<AwsProfile, ObjectsError> {
        let named =
            (self.variable)("AWS_PROFILE").or_else(|| (self.variable)("AWS_DEFAULT_PROFILE"));
        let named = named.filter(|name| !name.is_empty());
        let name = named.as_deref().unwrap_or("default");
        let credentials =
            self.section("AWS_SHARED_CREDENTIALS_FILE", "credentials", &[name.to_owned()])?;
        let config = [format!("profile {name}"), name.to_owned()];
        // Only the profile `default` may be without the word.
        let config = if name == "default" { &config[..] } else { &config[..1] };
        let config = self.section("AWS_CONFIG_FILE", "config", config)?;
        let refused = |why: String| ObjectsError::Settings { name: "AWS_PROFILE".to_owned(), why };
        if named.is_some() && credentials.is_none() && config.is_none() {
            return Err(refused(format!(
                "names the profile {name}, which is neither in ~/.aws/credentials nor in ~/.aws/config"
            )));
        }
        let sections = [credentials.unwrap_or_default(), config.unwrap_or_default()];
        let keys = sections.iter().find_map(keys_of);
        if wants_keys
            && keys.is_none()
            && let Some(elsewhere) = ELSEWHERE
                .iter()
                .find(|name| sections.iter().any(|section| section.contains_key(**name)))
        {
            return Err(refused(format!(
                "the profile {name} takes its credentials from its {elsewhere}, which is not read here; hand them over with: eval \"$(aws configure export-credentials --profile {name} --format env)\""
            )));
        }
        let setting = |name: &str| sections.iter().find_map(|section| section.get(name).cloned());
        Ok(AwsProfile { keys, region: setting("region"), endpoint: setting("endpoint_url") })
    }

    /// The first of these sections that a file has.
    fn section(
        &self,
        variable: &str,
        name: &str,
        sections: &[String],
    ) -> Result<Option<Section>, ObjectsError> {
        let own = || Some(self.home.clone()?.join(".aws").join(name));
        let Some(file) = (self.variable)(variable).map(PathBuf::from).or_else(own) else {
            return Ok(None);
        };
        match std::fs::read_to_string(&file) {
            Ok(text) => {
                let mut found = sections_of(&text);
                Ok(sections.iter().find_map(|name| found.remove(name)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ObjectsError::File { file, error }),
        }
    }
}

fn keys_of(section: &Section) -> Option<AwsKeys> {
    Some(AwsKeys {
        id: section.get("aws_access_key_id")?.clone(),
        secret: section.get("aws_secret_access_key")?.clone(),
        token: section.get("aws_session_token").cloned(),
    })
}

/// The sections of such a file. Lines that begin with a space belong to a setting of several lines, and count nowhere here.
fn sections_of(text: &str) -> HashMap<String, Section> {
    let mut sections: HashMap<String, Section> = HashMap::new();
    let mut current = None;
    for line in text.lines() {
        let is_inner = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let words: Vec<_> = name.split_whitespace().collect();
            let name = words.join(" ");
            sections.entry(name.clone()).or_default();
            current = Some(name);
            continue;
        }
        if let (Some(section), Some((name, value)), false) =
            (&current, line.split_once('='), is_inner)
        {
            let settings = sections.entry(section.clone()).or_default();
            settings.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "\
# keys
[default]
aws_access_key_id = A
aws_secret_access_key = B=
[ work ]
aws_access_key_id=C
aws_secret_access_key=D
aws_session_token=E
";
    const CONFIG: &str = "\
[default]
region = eu-central-1
s3 =
  endpoint_url = http://inner
[profile work]
endpoint_url = http://127.0.0.1:9
[profile role]
role_arn = arn:x
source_profile = default
";

    fn found(variables: &[(&str, &str)]) -> Result<AwsProfile, String> {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(home.path().join(".aws")).expect("made");
        std::fs::write(home.path().join(".aws/credentials"), CREDENTIALS).expect("written");
        std::fs::write(home.path().join(".aws/config"), CONFIG).expect("written");
        let variable = |name: &str| {
            let of = variables.iter().find(|(known, _)| *known == name)?;
            Some(of.1.to_owned())
        };
        let places = ProfilePlaces { variable: &variable, home: Some(home.path().to_owned()) };
        places.profile(true).map_err(|error| error.to_string())
    }

    #[test]
    fn profiles_are_read_as_aws_tools_read_them() {
        let default = found(&[]).expect("found");
        let keys = default.keys.expect("keys");
        assert_eq!((&keys.id[..], &keys.secret[..], keys.token), ("A", "B=", None));
        assert_eq!((default.region.as_deref(), default.endpoint), (Some("eu-central-1"), None));
        let work = found(&[("AWS_PROFILE", "work")]).expect("found");
        let keys = work.keys.expect("keys");
        assert_eq!((&keys.id[..], keys.token.as_deref()), ("C", Some("E")));
        assert_eq!((work.region, work.endpoint.as_deref()), (None, Some("http://127.0.0.1:9")));
    }

    #[test]
    fn what_is_not_read_is_a_sentence() {
        let role = found(&[("AWS_PROFILE", "role")]).err().expect("refused");
        assert!(
            role.starts_with(
                "AWS_PROFILE: the profile role takes its credentials from its role_arn"
            ),
            "{role}"
        );
        let none = found(&[("AWS_PROFILE", "none")]).err().expect("refused");
        assert!(
            none.starts_with("AWS_PROFILE: names the profile none, which is neither"),
            "{none}"
        );
        let elsewhere =
            [("AWS_SHARED_CREDENTIALS_FILE", "/nowhere"), ("AWS_CONFIG_FILE", "/nowhere")];
        assert!(found(&elsewhere).expect("no files").keys.is_none());
    }
}
