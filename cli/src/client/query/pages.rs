//! Lists: the node sends them in pages, which are joined.

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wallet::{ClientError, Page};

use crate::client::{CliError, Interrupts};

/// The most pages that are asked for to make one list.
pub(super) const PAGES_MAX: usize = 500;

/// Which part of a list.
#[derive(Args, Debug)]
pub struct PageArgs {
    /// At most this many items, up to 500
    #[arg(long, value_name = "N", default_value_t = 30)]
    limit: u32,
    /// Continue after this cursor, which the previous page printed
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

impl PageArgs {
    /// The first page to ask for.
    pub(super) fn page(&self) -> Page {
        Page { cursor: self.cursor.clone(), limit: Some(self.limit) }
    }
}

/// A page of a list, its items as the node wrote them.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    items: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

/// As many items as were asked for, or as there are: a filter, or long texts, can leave pages short or
/// empty, with a cursor to go on. After ctrl-C, and when a later page is refused, what there is so far
/// is the answer.
pub(super) async fn items(
    page: Page,
    ask: impl AsyncFn(Page) -> Result<String, ClientError>,
) -> Result<String, CliError> {
    let unreadable = |error: serde_json::Error| {
        CliError::Failed(format!("the node's answer cannot be read: {error}"))
    };
    let first = ask(page.clone()).await?;
    let mut list: Listed = serde_json::from_str(&first).map_err(unreadable)?;
    let wanted = page.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let mut interrupts = Interrupts::listen()?;
    for _ in 1..PAGES_MAX {
        let missing = u32::try_from(wanted.saturating_sub(list.items.len())).unwrap_or(u32::MAX);
        let Some(cursor) = list.next_cursor.clone().filter(|_| missing > 0) else { break };
        let next = Page { cursor: Some(cursor), limit: page.limit.map(|_| missing) };
        let answer = match interrupts.unless(ask(next)).await {
            Some(Err(error)) if list.items.is_empty() => return Err(error.into()),
            Some(Err(_)) | None => break,
            Some(Ok(answer)) => answer,
        };
        let Listed { items, next_cursor } = serde_json::from_str(&answer).map_err(unreadable)?;
        list.items.extend(items);
        list.next_cursor = next_cursor;
    }
    serde_json::to_string(&list).map_err(unreadable)
}
