"""Trains the byte-level BPE vocabulary of treble-tiny on generated records.

Usage: python3 make_tokenizer.py OUT_DIR [--records N]
Writes tokenizer.json and tokenizer_config.json. The pipeline is that of the published releases: NFC, their split pattern, bytes.
"""

import argparse
import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import encode
import release
from records import families, training_record

PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def texts(count):
    """Every piece of `count` generated records, fixed ones included, so that the words all records contain become single tokens."""
    for index in range(count):
        request, _ = training_record("tokenizer", index)
        yield encode.PREFIX.replace("<|im_start|>", "").replace("<|im_end|>", "")
        yield encode.render(request["state"])
        yield "\n\nSCHEMA FIELDS:\n"
        for number, (question_id, question) in enumerate(request["questions"].items(), 1):
            yield f"\nFIELD {number}\nID: {question_id}\nTYPE: {question['type']}\nINSTRUCTION: "
            yield question["instructions"]
            yield "\nALLOWED OPTIONS:\n"
            for option, (option_id, description) in enumerate(encode.options_of(question), 1):
                yield f"OPTION {option}: "
                yield encode.render({"option_id": option_id} | ({} if description is None else {"description": description}))
            yield "END FIELD\n"
        yield "JOINT SCHEMA DECISIONS: user assistant <0.3 seconds>"


def make(count):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=release.VOCABULARY, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts(count), trainer)
    assert tokenizer.get_vocab_size() == release.VOCABULARY, tokenizer.get_vocab_size()
    tokenizer.add_tokens([AddedToken(token, special=token not in release.NOT_SPECIAL, normalized=False)
                          for token in release.ADDED_TOKENS])
    assert tokenizer.token_to_id("<|image_pad|>") == release.token_id("<|image_pad|>")
    return tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--records", type=int, default=1000 * len(families()))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    tokenizer = make(arguments.records)
    (arguments.out / "tokenizer.json").write_text(tokenizer.to_str(pretty=False))
    (arguments.out / "tokenizer_config.json").write_text(json.dumps(release.TOKENIZER, indent=2) + "\n")


if __name__ == "__main__":
    main()
