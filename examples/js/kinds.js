// The kinds of transactions and their fields, as the node declares them: made by
// OMBRA_RENEW=1 ./run test in_the_repository

export const DECLARATIONS = {
  "kinds": [
    {
      "doc": "One public turn of a conversation.",
      "fork": "v6",
      "name": "ChatTurn",
      "optional": [
        {
          "doc": "A finalised blob with the content.",
          "form": "blobId",
          "name": "contentBlobId"
        },
        {
          "doc": "A turn of the same conversation.",
          "form": "hash",
          "name": "parentTurnHash"
        },
        {
          "doc": "An existing run.",
          "form": "hash",
          "name": "agentRunId"
        },
        {
          "doc": "Finalised blobs shown with the turn, at most 16.",
          "form": "objects",
          "max": 16,
          "members": [
            {
              "doc": "`image`, `audio` or `file`.",
              "form": "word",
              "name": "type",
              "words": [
                "image",
                "audio",
                "file"
              ]
            },
            {
              "doc": "The blob.",
              "form": "blobId",
              "name": "blobId"
            }
          ],
          "name": "attachments"
        }
      ],
      "required": [
        {
          "doc": "The conversation, an opaque id.",
          "form": "hash",
          "name": "conversationId"
        },
        {
          "doc": "Who speaks, as the sender says: `user`, `assistant`, `system` or `tool`.",
          "form": "word",
          "name": "role",
          "words": [
            "user",
            "assistant",
            "system",
            "tool"
          ]
        },
        {
          "doc": "The text, at most 16,384 bytes; not empty unless `contentBlobId` is given.",
          "form": "text",
          "maxBytes": 16384,
          "minBytes": 0,
          "name": "content"
        }
      ],
      "section": "5.1",
      "type": "CHAT_TURN"
    },
    {
      "doc": "Asks for an agent run and puts its price into escrow.",
      "fork": "v6",
      "name": "AgentRequest",
      "optional": [
        {
          "doc": "A finalised blob with a longer prompt.",
          "form": "blobId",
          "name": "promptBlobId"
        },
        {
          "doc": "The model that the submitter would like.",
          "form": "text",
          "maxBytes": 256,
          "minBytes": 0,
          "name": "modelHint"
        }
      ],
      "required": [
        {
          "doc": "The run's id, which follows from sender, nonce and prompt.",
          "filled": "computed",
          "form": "hash",
          "name": "agentRunId"
        },
        {
          "doc": "The conversation that the run belongs to.",
          "filled": "default",
          "form": "hash",
          "name": "conversationId"
        },
        {
          "doc": "What is asked, 1 to 16,384 bytes.",
          "form": "text",
          "maxBytes": 16384,
          "minBytes": 1,
          "name": "prompt"
        },
        {
          "doc": "Names of the tools that the miner may use.",
          "filled": "empty",
          "form": "names",
          "name": "toolsWhitelist"
        },
        {
          "doc": "The escrow: the most that the run may cost.",
          "form": "amount",
          "minParam": "minMaxFee",
          "name": "maxFee",
          "unit": "micro"
        },
        {
          "doc": "The most steps, 1 to 200.",
          "form": "integer",
          "max": 200,
          "min": 1,
          "name": "maxSteps",
          "unit": "steps"
        }
      ],
      "section": "5.2",
      "type": "AGENT_REQUEST"
    },
    {
      "doc": "Takes a pending run; the sender becomes its miner.",
      "fork": "v6",
      "name": "AgentClaim",
      "optional": [],
      "required": [
        {
          "doc": "The run.",
          "form": "hash",
          "name": "agentRunId"
        },
        {
          "doc": "The miner, who must be the sender.",
          "filled": "sender",
          "form": "address",
          "name": "minerAddress"
        },
        {
          "doc": "The miner's model, at most 256 bytes.",
          "form": "text",
          "maxBytes": 256,
          "minBytes": 0,
          "name": "modelInfo"
        },
        {
          "doc": "What the miner runs on: `laptop`, `desktop`, `workstation`, `server` or `cluster`.",
          "form": "word",
          "name": "hardwareTier",
          "words": [
            "laptop",
            "desktop",
            "workstation",
            "server",
            "cluster"
          ]
        }
      ],
      "section": "5.3",
      "type": "AGENT_CLAIM"
    },
    {
      "doc": "Reports one iteration of the miner's model.",
      "fork": "v6",
      "name": "AgentStep",
      "optional": [
        {
          "doc": "A finalised blob with the model's reasoning.",
          "form": "blobId",
          "name": "thoughtBlobId"
        },
        {
          "doc": "The tools that were called, at most 64 calls.",
          "form": "objects",
          "max": 64,
          "members": [
            {
              "doc": "The tool.",
              "form": "text",
              "maxBytes": 256,
              "minBytes": 0,
              "name": "name"
            },
            {
              "doc": "SHA-256 of the canonical JSON of the arguments.",
              "form": "hash",
              "name": "argsHash"
            },
            {
              "doc": "SHA-256 of the result's text.",
              "form": "hash",
              "name": "resultHash"
            },
            {
              "doc": "How long it took.",
              "form": "integer",
              "max": 9007199254740991,
              "min": 0,
              "name": "durationMs",
              "unit": "ms"
            },
            {
              "doc": "Whether it succeeded.",
              "form": "boolean",
              "name": "ok"
            }
          ],
          "name": "toolCalls"
        },
        {
          "doc": "A finalised blob with the output.",
          "form": "blobId",
          "name": "outputBlobId"
        }
      ],
      "required": [
        {
          "doc": "The run.",
          "form": "hash",
          "name": "agentRunId"
        },
        {
          "doc": "Greater than that of the last step, below the run's `maxSteps`.",
          "form": "integer",
          "max": 9007199254740991,
          "min": 0,
          "name": "stepIndex"
        },
        {
          "doc": "Tokens that the model wrote.",
          "form": "integer",
          "max": 9007199254740991,
          "min": 0,
          "name": "outputTokens",
          "unit": "tokens"
        },
        {
          "doc": "SHA-256 of the output's text.",
          "form": "hash",
          "name": "outputHash"
        }
      ],
      "section": "5.4",
      "type": "AGENT_STEP"
    },
    {
      "doc": "Ends a run and divides its escrow.",
      "fork": "v6",
      "name": "AgentFinish",
      "optional": [
        {
          "doc": "The answer, at most 16,384 bytes.",
          "form": "text",
          "maxBytes": 16384,
          "minBytes": 0,
          "name": "finalAnswerInline"
        },
        {
          "doc": "A finalised blob with the answer.",
          "form": "blobId",
          "name": "finalAnswerBlobId"
        }
      ],
      "required": [
        {
          "doc": "The run.",
          "form": "hash",
          "name": "agentRunId"
        },
        {
          "doc": "The sum over the recorded steps.",
          "filled": "computed",
          "form": "integer",
          "max": 9007199254740991,
          "min": 0,
          "name": "totalTokensOut",
          "unit": "tokens"
        },
        {
          "doc": "How it ended: `completed`, `failed`, `timeout`, `insufficient_funds` or `cancelled`.",
          "form": "word",
          "name": "status",
          "words": [
            "completed",
            "failed",
            "timeout",
            "insufficient_funds",
            "cancelled"
          ]
        },
        {
          "doc": "What the miner gets.",
          "filled": "computed",
          "form": "amount",
          "name": "minerReward",
          "unit": "micro"
        },
        {
          "doc": "What the submitter gets back.",
          "filled": "computed",
          "form": "amount",
          "name": "userRefund",
          "unit": "micro"
        },
        {
          "doc": "What is burned.",
          "filled": "computed",
          "form": "amount",
          "name": "networkFee",
          "unit": "micro"
        }
      ],
      "section": "5.5",
      "type": "AGENT_FINISH"
    },
    {
      "doc": "Takes back a run that nobody has claimed.",
      "fork": "v6",
      "name": "AgentCancel",
      "optional": [],
      "required": [
        {
          "doc": "The run.",
          "form": "hash",
          "name": "agentRunId"
        }
      ],
      "section": "5.6",
      "type": "AGENT_CANCEL"
    },
    {
      "doc": "Moves money.",
      "fork": null,
      "name": "Transfer",
      "optional": [],
      "required": [
        {
          "doc": "The receiver; may be the sender.",
          "form": "address",
          "name": "to"
        },
        {
          "doc": "What the receiver gets.",
          "form": "amount",
          "name": "amount",
          "unit": "micro"
        },
        {
          "doc": "What the block's proposer gets.",
          "filled": "empty",
          "form": "amount",
          "name": "fee",
          "unit": "micro"
        }
      ],
      "section": "5.8",
      "type": "TRANSFER"
    },
    {
      "doc": "Writes the sender's entry in the miner directory.",
      "fork": null,
      "name": "MinerRegister",
      "optional": [],
      "required": [
        {
          "doc": "A name for people, at most 256 bytes.",
          "form": "text",
          "maxBytes": 256,
          "minBytes": 0,
          "name": "name"
        },
        {
          "doc": "What the miner can do: at most 64 entries of 64 bytes, each once.",
          "filled": "empty",
          "form": "names",
          "name": "capabilities"
        },
        {
          "doc": "The miner's model, at most 256 bytes.",
          "form": "text",
          "maxBytes": 256,
          "minBytes": 0,
          "name": "modelInfo"
        }
      ],
      "section": "5.9",
      "type": "MINER_REGISTER"
    },
    {
      "doc": "Announces a blob.",
      "fork": null,
      "name": "BlobInit",
      "optional": [],
      "required": [
        {
          "doc": "A new id, 1 to 128 characters of `[A-Za-z0-9_-]`.",
          "form": "blobId",
          "name": "blobId"
        },
        {
          "doc": "A media type, at most 256 bytes, as the owner says.",
          "form": "text",
          "maxBytes": 256,
          "minBytes": 0,
          "name": "contentType"
        },
        {
          "doc": "The size, at least 1.",
          "form": "integer",
          "max": 9007199254740991,
          "maxParam": "maxBlobBytes",
          "min": 1,
          "name": "totalBytes",
          "unit": "bytes"
        },
        {
          "doc": "The size divided by 400,000, rounded up.",
          "filled": "computed",
          "form": "integer",
          "max": 9007199254740991,
          "min": 0,
          "name": "totalChunks",
          "unit": "chunks"
        },
        {
          "doc": "SHA-256 of all bytes.",
          "form": "hash",
          "name": "contentHash"
        }
      ],
      "section": "5.10",
      "type": "SOCIAL_BLOB_INIT"
    },
    {
      "doc": "One piece of a blob.",
      "fork": null,
      "name": "BlobChunk",
      "optional": [],
      "required": [
        {
          "doc": "The blob.",
          "form": "blobId",
          "name": "blobId"
        },
        {
          "doc": "Which piece, from 0.",
          "form": "integer",
          "max": 9007199254740991,
          "min": 0,
          "name": "chunkIndex"
        },
        {
          "doc": "The piece: 400,000 bytes, fewer only in the last one.",
          "form": "base64",
          "name": "chunkDataBase64"
        }
      ],
      "section": "5.10",
      "type": "SOCIAL_BLOB_CHUNK"
    },
    {
      "doc": "Closes a blob, which may then be referenced.",
      "fork": null,
      "name": "BlobFinalize",
      "optional": [],
      "required": [
        {
          "doc": "The blob.",
          "form": "blobId",
          "name": "blobId"
        }
      ],
      "section": "5.10",
      "type": "SOCIAL_BLOB_FINALIZE"
    },
    {
      "doc": "A validator's vote for a change of the validator set.",
      "fork": "validatorVote",
      "name": "ValidatorVote",
      "optional": [],
      "required": [
        {
          "doc": "The consensus key of the validator that shall be added, changed or removed.",
          "form": "key",
          "name": "candidateKey"
        },
        {
          "doc": "The voting power that it shall have, at most 2^48; 0 removes it.",
          "form": "integer",
          "max": 281474976710656,
          "min": 0,
          "name": "power"
        },
        {
          "doc": "The last block time at which the vote counts, in milliseconds since 1970: later than the transaction's timestamp, by at most 30 days.",
          "filled": "default",
          "form": "integer",
          "max": 9007199254740991,
          "min": 0,
          "name": "expiresAt",
          "unit": "ms since 1970"
        }
      ],
      "section": "5.11",
      "type": "VALIDATOR_VOTE"
    }
  ]
};
