"""Sentences and questions with slots: people, places, nouns ``n1`` to ``n6``, verbs, adjectives.

The first two sentences of a language use ``who``, ``n1`` and ``n2``, as its questions do.
"""

from __future__ import annotations

from typing import Final

NOUN_SLOTS: Final = ("n1", "n2", "n3", "n4", "n5", "n6")
JOINT: Final = {"en": " ", "zh": "", "ja": ""}

SENTENCES: Final = {
    "en": (
        "{who} {v} the {a} {n1} for the {n2} in {month} and asked {other} to look at it again.",
        "We agreed with {who} that the {n1} of the {n2} should be {a} before the end of {month}.",
        "The {n2} in {place} is where {who} keeps the {a} {n1}, next to the {n3}.",
        "{who} told me that the {n1} was {v} because of the {n2}, and that it cost {num} euros.",
        "After the {n3} in {place}, {who} {w} a {b} {n1} and said that the {n2} can wait.",
        "I would rather have the {n1} with the {n2} than the {b} {n4}, as {who} knows.",
        "There is a {a} {n1} in the {n2} of {who}; nobody has {v} it since {month}.",
        "{other} thinks that {who} has {v} the wrong {n1}, so the {n2} will be {w} on day {num}.",
        "From {month} on, {who} will not use the {n5} for the {n1} any more but the {b} {n2}.",
        "Please remember that {who} is allergic to {n1} and does not want {n2} with the {n6}.",
    ),
    "zh": (
        "{who}在{month}把{a}的{n1}和{n2}都{v}了一遍，还请{other}再看看。",
        "我们跟{who}说好了，{n2}的{n1}要在{month}底之前{v}完，不要太{a}。",
        "{who}的{n1}放在{place}的{n2}里，旁边是{n3}，一共{num}件。",
        "听{who}说，因为{n2}的关系，{n1}已经{v}了，花了{num}块钱。",
        "从{place}的{n3}回来以后，{who}觉得{n1}比{n2}更{b}。",
        "以后不要再用{n4}来{v}{n1}了，{who}更喜欢{a}的{n2}。",
        "{other}认为{who}{v}错了{n1}，所以{n2}要等到{month}再{w}。",
        "请记住，{who}对{n1}过敏，也不想要{n2}和{n6}。",
    ),
    "ja": (
        "{who}さんは{month}に{a}{n1}を{n2}のために{v}ので、{other}さんにもう一度見てもらう。",
        "{who}さんと相談して、{n2}の{n1}は{month}の終わりまでに{a}ものにすると決めた。",
        "{place}の{n2}には{who}さんの{a}{n1}があり、その隣に{n3}が置いてある。",
        "{n2}のせいで{n1}を{v}と{who}さんから聞いた。費用は{num}円だった。",
        "{place}の{n3}のあと、{who}さんは{b}{n1}を{w}が、{n2}はまだ待てると言った。",
        "これからは{n4}ではなく{b}{n2}を使って{n1}を準備する、と{who}さんが言っていた。",
        "{other}さんによると、{who}さんが{v}のは違う{n1}で、{n2}は{month}にやり直すそうだ。",
        "{who}さんは{n1}のアレルギーがあり、{n6}に{n2}を入れないでほしいそうです。",
    ),
}

QUESTIONS: Final = {
    "en": (
        "What did {who} say about the {n1} and the {n2}?",
        "Where is the {n1} of {who}, and who was going to look at the {n2}?",
        "Do you remember why the {a} {n1} for the {n2} had to be changed by {who} in {month}?",
        "When will {who} be done with the {n1} that we talked about?",
        "Which {n2} does {who} want to have with the {n1}?",
    ),
    "zh": (
        "{who}关于{n1}和{n2}说过什么？",
        "你还记得{who}为什么要{v}那个{n1}吗？",
        "{who}的{n1}现在放在哪里，{n2}又是谁的？",
        "{month}的时候{who}对{n2}和{n1}有什么要求？",
    ),
    "ja": (
        "{who}さんは{n1}と{n2}について何と言っていましたか？",
        "{who}さんの{n1}はどこにありますか。{n2}の近くですか？",
        "どうして{month}に{who}さんの{n1}を変えなければならなかったのですか？",
        "{who}さんは{n2}と一緒にどんな{n1}が欲しいのですか？",
    ),
}
