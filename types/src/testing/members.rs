//! The members of each kind, as the table of docs/protocol.md section 5 has them.

/// The members of each kind, required | optional in their order, with what each must be.
pub(crate) const TABLE: [(&str, &str); 25] = [
    (
        "CHAT_TURN",
        "conversationId:hash role:text content:text \
         | contentBlobId:text parentTurnHash:hash agentRunId:hash attachments:list",
    ),
    (
        "AGENT_REQUEST",
        "agentRunId:hash conversationId:hash prompt:text toolsWhitelist:list maxFee:amount \
         maxSteps:integer | promptBlobId:text modelHint:text",
    ),
    ("AGENT_CLAIM", "agentRunId:hash minerAddress:address modelInfo:text hardwareTier:text |"),
    (
        "AGENT_STEP",
        "agentRunId:hash stepIndex:integer outputTokens:integer outputHash:hash \
         | thoughtBlobId:text toolCalls:list outputBlobId:text",
    ),
    (
        "AGENT_FINISH",
        "agentRunId:hash totalTokensOut:integer status:text minerReward:amount userRefund:amount \
         networkFee:amount | finalAnswerInline:text finalAnswerBlobId:text",
    ),
    ("AGENT_CANCEL", "agentRunId:hash |"),
    ("TRANSFER", "to:address amount:amount fee:amount |"),
    ("MINER_REGISTER", "name:text capabilities:list modelInfo:text |"),
    (
        "SOCIAL_BLOB_INIT",
        "blobId:text contentType:text totalBytes:integer totalChunks:integer contentHash:hash |",
    ),
    ("SOCIAL_BLOB_CHUNK", "blobId:text chunkIndex:integer chunkDataBase64:text |"),
    ("SOCIAL_BLOB_FINALIZE", "blobId:text |"),
    ("VALIDATOR_VOTE", "candidateKey:hash power:integer expiresAt:integer |"),
    ("FORK_VOTE", "fork:text height:integer |"),
    ("PARAM_VOTE", "name:text value:integer height:integer |"),
    ("MINER_BOND", "amount:amount |"),
    ("MINER_UNBOND", "amount:amount |"),
    ("AGENT_REFUSE", "agentRunId:hash |"),
    (
        "EVIDENCE",
        "validatorKey:hash height:integer round:integer kind:text firstValue:text \
         firstSignature:signature secondValue:text secondSignature:signature \
         | firstValidRound:integer secondValidRound:integer",
    ),
    ("AGENT_REGISTER", "agentId:hash metadata:text |"),
    ("AGENT_RETIRE", "agentId:hash |"),
    (
        "MINER_OFFER",
        "executor:text capacity:integer perCall:amount promptPerM:amount completionPerM:amount \
         fuelPerG:amount |",
    ),
    (
        "AGENT_CALL",
        "callId:hash agentId:hash agentVersion:text payload:text consensus:text \
         committeeSize:integer prices:object limits:object maxFee:amount timeoutMs:integer \
         | threshold:integer appealable:boolean onResult:list conversationId:hash",
    ),
    ("CALL_COMMIT", "callId:hash round:integer commitment:hash |"),
    (
        "CALL_REVEAL",
        "callId:hash round:integer salt:hash outcome:text result:text inputTokens:integer \
         outputTokens:integer fuel:integer receiptHash:hash | reason:text",
    ),
    ("CALL_APPEAL", "callId:hash |"),
];

/// The required members of a kind and the optional ones, each with what it must be.
pub(crate) fn members(type_name: &str) -> [Vec<(&'static str, &'static str)>; 2] {
    let (_, row) = TABLE.iter().find(|(name, _)| *name == type_name).unwrap();
    let (required, optional) = row.split_once('|').unwrap();
    [required, optional]
        .map(|half| half.split_whitespace().map(|member| member.split_once(':').unwrap()).collect())
}
