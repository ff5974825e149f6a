"""Words that say nothing about what is looked for, question words and pronouns included.

A question to a memory ("When did she go to …?") is mostly such words, and in short passages
they would outweigh the rest. Left out of queries only, and never all of them. Words that turn
the meaning around (no, only, before, after) stay.
"""

from __future__ import annotations

_ARTICLES = "a an the this that these those such"
_PRONOUNS = """
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his
    himself she her hers herself it its itself they them their theirs themselves one
    someone somebody something anyone anybody anything everyone everybody everything"""
_QUESTIONS = "what which who whom whose when where why how whether whatever whichever whoever"
_AUXILIARIES = """
    am is are was were be been being have has had having do does did doing done will would shall
    should can could may might must ought get gets got getting let lets dont doesnt didnt isnt
    arent wasnt werent cant cannot couldnt wont wouldnt shouldnt hasnt havent hadnt im ive id youre
    hes shes theyre thats whats"""
_LINKS = """
    and or but nor so yet if then else because as until while of at by for with about into to
    from in out on off over onto upon than too very just also there here each any all some own"""
_REQUESTS = "please tell"

ENGLISH = frozenset(
    " ".join((_ARTICLES, _PRONOUNS, _QUESTIONS, _AUXILIARIES, _LINKS, _REQUESTS)).split()
)
"""Stop words, folded, without apostrophes."""

_CHINESE = """
    的 了 是 在 和 与 與 或 着 著 吗 嗎 呢 吧 啊 有 也 都 就 被 把 这 這 那 其 之
    这个 這個 那个 那個 什么 什麼 怎么 怎麼 怎样 怎樣 怎么样 怎麼樣 如何 哪里 哪裡 哪儿 哪些
    哪个 哪個 哪 谁 誰 为什么 為什麼 为何 為何 多少 何时 何時 是否
    我 你 他 她 它 我们 我們 你们 你們 他们 他們"""

CHINESE = frozenset(_CHINESE.split())
"""Question words, particles and pronouns, as jieba cuts them; simplified and traditional."""

_JAPANESE = """
    です ます でし まし した すか たか のは とは には では であ ある いる てい いた なっ った
    どこ なに 何で 何と 何が 何を 何は いつ つで 誰で だれ どの よう うな どん んな なぜ
    から まで して され れた れる って とい いう との もの こと"""

JAPANESE_PAIRS = frozenset(_JAPANESE.split())
"""Character pairs that particles, copulas and question words leave behind."""
