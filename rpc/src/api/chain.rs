//! The chain, its blocks, its money, its rules.

use jsonrpsee::proc_macros::rpc;
use types::{Hash, Run};

use super::{Api, paging};
use crate::cursor;
use crate::error::RpcError;
use crate::ports::{ProofTarget, Tip};
use crate::wire::{
    BlockSelector, BlockSummary, BlockView, BlocksQuery, ChainInfo, FeeSchedule, Forks, ForksView,
    InclusionEstimate, Page, PageOf, ParamsView, ProofQuery, ProofView, PunishedKeyView,
    SupplyView, ValidatorView,
};

/// The rules that this node follows.
const PROTOCOL: &str = "ombra-v6";

/// The bytes of a transaction whose place an estimate is for, if the caller does not say.
const SIZE_DEFAULT: u64 = 512;
/// More than any block has.
const SIZE_MAX: u64 = 1 << 32;

/// The chain and its blocks.
#[rpc(server, namespace = "ombra")]
pub trait ChainRpc {
    /// What chain this is and where it stands.
    #[method(name = "chainInfo", blocking)]
    fn chain_info(&self) -> Result<ChainInfo, RpcError>;

    /// One block, with its transactions as objects or as hashes.
    #[method(name = "getBlock", blocking)]
    fn block(&self, block: BlockSelector, full: Option<bool>) -> Result<BlockView, RpcError>;

    /// Summaries of blocks, newest first.
    #[method(name = "getBlocks", blocking)]
    fn blocks(&self, query: Option<BlocksQuery>) -> Result<PageOf<BlockSummary>, RpcError>;

    /// The counters of the supply.
    #[method(name = "getSupply", blocking)]
    fn supply(&self) -> Result<SupplyView, RpcError>;

    /// What sets prices and limits.
    #[method(name = "feeSchedule", blocking)]
    fn fee_schedule(&self) -> Result<FeeSchedule, RpcError>;

    /// What a place in the next block costs, and what others tip.
    #[method(name = "feeEstimate", blocking)]
    fn fee_estimate(&self, size: Option<u64>) -> Result<InclusionEstimate, RpcError>;

    /// The validators of a height; of the latest block if none is given.
    #[method(name = "getValidators", blocking)]
    fn validators(&self, height: Option<u64>) -> Result<Vec<ValidatorView>, RpcError>;

    /// The keys of validators that lost their power for good, in their order.
    #[method(name = "listPunishedKeys", blocking)]
    fn punished_keys(&self, page: Option<Page>) -> Result<PageOf<PunishedKeyView>, RpcError>;

    /// The forks that are to come: votes, and what is fixed.
    #[method(name = "forks", blocking)]
    fn forks(&self) -> Result<ForksView, RpcError>;

    /// The parameters that votes can change: values, bounds, votes, and what is decided.
    #[method(name = "params", blocking)]
    fn params(&self) -> Result<ParamsView, RpcError>;

    /// A Merkle proof that can be checked without the node.
    #[method(name = "getProof", blocking)]
    fn proof(&self, of: ProofQuery) -> Result<ProofView, RpcError>;
}

impl ChainRpcServer for Api {
    fn chain_info(&self) -> Result<ChainInfo, RpcError> {
        let Tip { height, hash, timestamp, earliest, events_from } = self.ports.chain.tip();
        let validators = self.ports.chain.validators(height.max(1))?;
        let rules = self.ports.rules.next_rules()?;
        Ok(ChainInfo {
            chain_id: self.facts.chain_id.clone(),
            protocol: PROTOCOL.to_owned(),
            genesis_hash: self.facts.genesis_hash,
            height,
            latest_block_hash: hash,
            latest_block_time: timestamp,
            earliest_block: earliest,
            events_from,
            syncing: self.ports.network.is_syncing(),
            peers: self.ports.network.peers().len(),
            validators: validators.map_or(0, |all| all.len()),
            forks: Forks::from(types::Forks {
                v7: rules.v7_from,
                v8: rules.v8_from,
                ..self.facts.forks
            }),
            params: self.facts.params.clone(),
            version: self.facts.version.clone(),
        })
    }

    fn block(&self, block: BlockSelector, full: Option<bool>) -> Result<BlockView, RpcError> {
        let (height, name) = self.resolve(block)?;
        let shown = height.map(|height| self.ports.chain.shown(height)).transpose()?.flatten();
        let shown = shown.ok_or_else(|| match height {
            Some(_) => RpcError::not_found("block", name),
            None => self.missing("block", name),
        })?;
        BlockView::new(shown, full.unwrap_or(true))
    }

    fn blocks(&self, query: Option<BlocksQuery>) -> Result<PageOf<BlockSummary>, RpcError> {
        let BlocksQuery { from, to, cursor, limit } = query.unwrap_or_default();
        let lowest = from.unwrap_or(1).max(1);
        let Tip { height, earliest, .. } = self.ports.chain.tip();
        let highest = to.unwrap_or(u64::MAX).min(height);
        let before: Option<u64> = cursor.as_deref().map(cursor::decode).transpose()?;
        let start = before.map_or(highest, |before| highest.min(before.saturating_sub(1)));

        if start >= lowest && start < earliest && height > 0 {
            return Err(RpcError::History { earliest });
        }
        let limit = limit.unwrap_or_default().get();
        let there = lowest.max(earliest);
        let wanted = usize::try_from(start.saturating_add(1).saturating_sub(there));
        let headers = match wanted.unwrap_or(usize::MAX).min(limit) {
            0 => Vec::new(),
            count => self.ports.transactions.headers(start, count)?,
        };
        let last = headers.last().map(|(_, header)| header.index);
        let items = headers.iter().map(|(hash, header)| BlockSummary::new(*hash, header)).collect();
        let next = last.filter(|last| *last > lowest);
        Ok(PageOf { items, next_cursor: next.as_ref().map(cursor::encode) })
    }

    fn supply(&self) -> Result<SupplyView, RpcError> {
        let supply = self.ports.accounts.supply()?;
        SupplyView::new(&supply).ok_or_else(|| {
            tracing::error!(?supply, "the counters of the supply contradict each other");
            RpcError::Internal
        })
    }

    fn fee_schedule(&self) -> Result<FeeSchedule, RpcError> {
        Ok(FeeSchedule::from(&self.ports.rules.next_rules()?))
    }

    fn fee_estimate(&self, size: Option<u64>) -> Result<InclusionEstimate, RpcError> {
        let size = size.unwrap_or(SIZE_DEFAULT);
        if !(1..=SIZE_MAX).contains(&size) {
            let expected = format!("1 to {SIZE_MAX} bytes");
            return Err(RpcError::invalid("size", size.to_string(), expected));
        }
        let (rules, tips) = (self.ports.rules.next_rules()?, self.hub.tips()?);
        let price = |bytes, base_fee| self.ports.rules.inclusion_fee(bytes, base_fee);
        Ok(InclusionEstimate::new(&rules, size, tips, price))
    }

    fn validators(&self, height: Option<u64>) -> Result<Vec<ValidatorView>, RpcError> {
        let height = height.unwrap_or_else(|| self.ports.chain.tip().height).max(1);
        let validators = self.ports.chain.validators(height)?;
        let validators = validators.ok_or_else(|| RpcError::not_found("height", height))?;
        Ok(validators.into_iter().map(ValidatorView::from).collect())
    }

    fn punished_keys(&self, page: Option<Page>) -> Result<PageOf<PunishedKeyView>, RpcError> {
        let page = page.unwrap_or_default();
        let slice = self.ports.keys.punished(page.position()?, page.limit())?;
        Ok(paging::page(slice, PunishedKeyView::from))
    }

    fn forks(&self) -> Result<ForksView, RpcError> {
        let votes = self.ports.forks.forks()?;
        Ok(ForksView::new(votes, self.facts.params.fork_delay_blocks))
    }

    fn params(&self) -> Result<ParamsView, RpcError> {
        let (votes, rules) = (self.ports.rules.params()?, self.ports.rules.next_rules()?);
        Ok(ParamsView::new(votes, &rules))
    }

    fn proof(&self, of: ProofQuery) -> Result<ProofView, RpcError> {
        let ProofQuery { account, agent_run, validators, bond, offer, agent, call } = of;
        let offer = offer.map(|it| ProofTarget::Offer(it.miner.0, it.executor.0));
        let named = [
            account.map(|address| ProofTarget::Account(address.0)),
            agent_run.map(|id| ProofTarget::AgentRun(id.0)),
            validators.filter(|wanted| *wanted).map(|_wanted| ProofTarget::Validators),
            bond.map(|address| ProofTarget::Bond(address.0)),
            offer,
            agent.map(|id| ProofTarget::Agent(id.0)),
            call.map(|id| ProofTarget::Call(id.0)),
        ];
        let mut named = named.into_iter().flatten();
        let (target, second) = (named.next(), named.next());
        let Some(target) = target.filter(|_| second.is_none()) else {
            let got = if second.is_some() { "several" } else { "none" };
            let expected =
                "one of account, agentRun, validators (true), bond, offer, agent and call";
            return Err(RpcError::invalid("of", got, expected));
        };
        let proof = self.ports.proofs.prove(&target)?;
        proof.map(ProofView::from).ok_or_else(|| RpcError::not_found("proof", "latest state"))
    }
}

impl Api {
    /// The height of a block, and how the client named it.
    fn resolve(&self, block: BlockSelector) -> Result<(Option<u64>, String), RpcError> {
        Ok(match block {
            BlockSelector::Index(index) => {
                (Some(index).filter(|index| *index > 0), index.to_string())
            }
            BlockSelector::Hash(hash) => (self.ports.chain.height_of(&hash)?, hash.to_string()),
            BlockSelector::Latest => {
                let height = self.ports.chain.tip().height;
                (Some(height).filter(|height| *height > 0), "latest".to_owned())
            }
        })
    }

    /// There is no such thing here. If the node began with a snapshot, it may stand before that.
    pub(crate) fn missing(&self, what: &'static str, name: impl ToString) -> RpcError {
        match self.ports.chain.tip().earliest {
            earliest @ 2.. => RpcError::History { earliest },
            0 | 1 => RpcError::not_found(what, name),
        }
    }

    pub(super) fn run_record(&self, agent_run_id: Hash) -> Result<Run, RpcError> {
        let run = self.ports.runs.run(&agent_run_id)?;
        run.ok_or_else(|| RpcError::not_found("agent run", agent_run_id))
    }

    pub(crate) fn page_bytes_max(&self) -> usize {
        usize::try_from(self.limits.page_bytes_max).unwrap_or(usize::MAX)
    }
}
