"""Sentences in other languages than English: read where every word that could change them is known, else not at all.

A statement says back what was asked, in the question's own words, with nothing but words of place and grammar
besides (`restated`); or it names one option or verdict and no word that denies, doubts, contrasts or compares
(`states_abroad`).
Of a language that is not known here nothing is read.
"""

from __future__ import annotations

import re
import unicodedata

from hedge_tasks.replies.word_sets import turned, word_set

_WORD = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)?")


_GRAMMAR = {
    "de": word_set(
        "der die das den dem des ein eine einen einem einer es ist sind war hier dort auf in im an am zu mit von vom"
        " für"
        " und dieser diesem dieses diese diesen liegt vor zeigt sich man sieht erkennt erkennen sehen lässt sichtbar"
        " handelt um wird werden gibt hat vorhanden erkennbar gezeigt dargestellt zeichen hinweis anzeichen"
        " bild aufnahme foto röntgenbild mrt ct befund eindeutig deutlich antwort wurde also daher somit"
    ),
    "fr": word_set(
        "le la les l d un une des du de il elle on y a est sont c ce cet cette ces dans sur au aux en et s se agit voit"
        " montre observe visible visibles présent présente image photo radiographie cliché scanner irm signe signes"
        " clairement bien avoir être ici ont peut voir réponse donc ainsi"
    ),
    "es": word_set(
        "el la los las un una unos unas de del en al a y es son está están esta este esto hay se trata observa observan"
        " ve ven aprecia aprecian muestra aparece presenta visible imagen foto fotografía radiografía tomografía signos"
        " signo evidencia evidencias claramente aquí respuesta su sí por lo tanto así entonces"
    ),
    "it": word_set(
        "il lo la gli le i l un uno una di del della dello dell nel nella nell in a al alla e è sono c ci si tratta"
        " vede"
        " vedono osserva osservano nota mostra presente presenti visibile immagine foto radiografia segni segno"
        " evidenza"
        " chiaramente questo questa qui risposta quello quella quindi dunque"
    ),
    "pt": word_set(
        "o a os as um uma uns umas de do da dos das em no na nos nas ao à e é são está estão este esta esse essa isto"
        " há"
        " se trata observa observam vê veem mostra aparece apresenta visível imagem foto fotografia radiografia sinais"
        " sinal evidência claramente aqui resposta sim portanto assim"
    ),
    "nl": word_set(
        "de het een van in op is zijn er te zien deze dit die dat en met aan voor wordt worden toont zichtbaar aanwezig"
        " afbeelding foto beeld röntgenfoto tekenen teken duidelijk hier antwoord dus"
    ),
}
"""By language its words of grammar and place, and those that say that something is to be seen."""

_DENYING = word_set(
    "nicht kein keine keinen keinem keiner keinerlei non ne n pas aucun aucune no ningún ninguna ninguno nessun nessuno"
    " nessuna alcun alcuno alcuna não nenhum nenhuma niet geen"
)
"""Words that deny the clause that they stand in."""

_HINDERING = {
    "de": r"nicht|kein\w*|nie|nichts|weder|noch|ohne|gegen|eher|statt|anstatt|aber|jedoch|sondern|allerdings|außer"
    r"|vielleicht"
    r"|könnte\w*|möglich\w*|eventuell|wahrscheinlich\w*|vermutlich|oder|falls|wenn|ob|ausgeschlossen|unklar|leider|wäre"
    r"|würde|weniger|als|falsch\w*|unmöglich|dass|nichts|mehr|ähnlich\w*|kaum|zwar|schließ\w*",
    "fr": r"ne|n|pas|aucune?|ni|jamais|sans|contre|plutôt|mais|cependant|toutefois|sauf|peut[ -]être|pourrait"
    r"|possible\w*"
    r"|probable\w*|ou|si|exclu\w*|malheureusement|serait|non|rien|moins|semblable|ressembl\w+|difficile|guère"
    r"|impossible|faux|fausse|dire|plus|comme|autre",
    "es": r"no|ning[uú]n\w*|nunca|nada|sin|contra|sino|pero|aunque|embargo|salvo|quizás?|podría\w*|posible\w*"
    r"|probable\w*"
    r"|descarta\w*|excluy\w*|o|u|ni|si|menos|parecid\w+|difícil|tampoco|lamentablemente|sería|imposible|fals[oa]|decir"
    r"|más|como|otr[oa]",
    "it": r"non|nessun\w*|né|mai|senza|contro|piuttosto|ma|però|tuttavia|tranne|forse|potrebbe\w*|possibile|probabil\w*"
    r"|esclud\w*|esclus\w*|o|oppure|se|sarebbe|alcun\w*|meno|simile|difficile|purtroppo|impossibile|fals[oa]|dire|più"
    r"|come|altr[oa]",
    "pt": r"não|nem|nenhum\w*|sem|contra|mas|porém|embora|exceto|talvez|poderia\w*|possível|provável\w*|descarta\w*"
    r"|exclu\w*"
    r"|ou|se(?! (?:trata|observa|vê|nota))|seria|menos|semelhante|difícil|infelizmente|tampouco|impossível|fals[oa]"
    r"|dizer|mais|como|outr[oa]",
    "nl": r"niet|geen|nooit|zonder|tegen|maar|echter|behalve|misschien|mogelijk\w*|waarschijnlijk|of|als|indien"
    r"|uitgesloten"
    r"|minder|lijkt|helaas|zou|noch|onmogelijk|onwaar|dan|meer|ander\w*",
    "cjk": r"(?!)",
    "cyrillic": r"не|ни|нет|без|но|а|або|али|или|однако|кроме|возможно|вероятно|похож\w*|может|если|ли|скорее"
    r"|исключ\w*|чем|кажется|немає|ні|якщо|чи|можливо|мабуть|вместо|замість|менее|более|больше|меньше|ошиб\w*|неверн\w*"
    r"|друг\w*|нельзя",
    "arabic": r"ليس\w*|لا|لم|لن|و?لكن|غير|بدون|دون|أو|ام|أم|ربما|قد|إذا|لو|يمكن|محتمل|سوى|إلا|بل|أقل|أكثر|يشبه|خطأ"
    r"|خاطئ\w*|نفي|استبعاد"
    r"|نیست|نه|یا|شاید|اگر|ولی|اما|بیشتر|کمتر|غلط|بدلا|بينما|عكس|سابقا",
    "devanagari": r"(?:नहीं|न|मत|या|लेकिन|परंतु|पर|शायद|संभव|अगर|यदि|बिना|सिवाय|बजाय|कम|अधिक"
    r"|ज़्यादा|जैसा|जैसी|जैसे|गलत|ग़लत|अलावा|मगर|किंतु|जबकि)",
}
"""By language words that deny, doubt, contrast, compare or offer a choice: a text with one says nothing for sure."""

_HINDERS = {
    name: re.compile(unicodedata.normalize("NFKC", rf"\b(?:{words})\b"), re.IGNORECASE)
    for name, words in _HINDERING.items()
}
_HINDERS_ANYWHERE = re.compile(
    r"[不没沒无無未非別别但却卻或若]|比|より|可能|也许|也許|排除|难以|除了|ない|ません|なく|ず|しかし|ただ|かも|または|もし|では|아니|않|없|하지만"
    r"|그러나|또는|수\s*있|[?？]|\b(?:not|but|or|if|unless|maybe|perhaps)\b",
    re.IGNORECASE,
)

_BY_SCRIPT = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_SCRIPTS = {"cyrillic": (0x400, 0x4FF), "arabic": (0x600, 0x6FF), "devanagari": (0x900, 0x97F)}
_LONGEST = 300

BECAUSE = r"(?:لأن|weil|denn|porque|parce|car|perché|pois|потому|так\ как|因为|なぜなら|karena|ponieważ|çünkü|vì)"
"""Words for "because", in front of which a digit stands for itself."""

_BAD = re.compile(
    r"\b(?:halluzin\w+|hallucin\w+|alucina\w+|allucin\w+|halusinasi|галлюцин\w+|falsch|fausse?|fals[oa]|incorrect[oae]"
    r"|erron[ée]e?[oa]?|errat[oa]|errad[oa]|неверн\w+)\b|幻觉|幻覺|错误|錯誤|虚构|ハルシネーション|誤り|환각|거짓",
    re.IGNORECASE,
)
_GOOD = re.compile(
    r"\b(?:faktisch|korrekt|richtig|exacte?|correct[oae]|corrett[oa]|corret[oa]|factuel(?:le)?|fattuale|верн(?:ый|о)"
    r"|benar)\b"
    r"|真实|真實|属实|正确|正確|准确|正しい|事実|사실|정확",
    re.IGNORECASE,
)


_IN_ENGLISH = re.compile(r"(?<![a-z-])(factual|hallucinated)(?![a-z-])", re.IGNORECASE)
# "Die Antwort ist", "la respuesta es una", "回答是"
_SAYS_OF_IT = re.compile(
    r"(?:\b(?:ist|est|es|è|é|is|adalah)\s+(?:(?:une?|una?|eine?|factually)\s+)?|[是は,，]\s*)", re.IGNORECASE
)

_ALSO_ENGLISH = word_set(
    "an in is on as am do die war man hat image photo visible mrt ct no me has met van does or of ten aux den dem per"
)
FOREIGN = frozenset(word for words in _GRAMMAR.values() for word in words - _ALSO_ENGLISH if len(word) > 1)
"""Words of other languages that are none of English."""


def language_of(text: str) -> str | None:
    """The language of a text by its words of grammar, or a script instead; None where it is not clear which.

    Example:
        >>> language_of("Das Bild ist T1-gewichtet"), language_of("Le vélo est vert"), language_of("Hän on vasemmalla")
        ('de', 'fr', None)
    """
    if _BY_SCRIPT.search(text):
        return "cjk"
    words = _WORD.findall(text.casefold())
    for script, (first, last) in _SCRIPTS.items():
        if words and sum(first <= ord(word[0]) <= last for word in words) > len(words) / 2:
            return script
    counts = {name: sum(word in grammar for word in words) for name, grammar in _GRAMMAR.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] >= min(2, len(words)) and counts[best] > 0 else None


def states_abroad(text: str) -> bool:
    """Whether a text is short, in a known language, and has no word that could turn a statement round.

    Example:
        >>> states_abroad("Le vélo est vert."), states_abroad("Le vélo n'est pas vert."), states_abroad("Hän on tässä.")
        (True, False, False)
    """
    language = language_of(text) if len(text) <= _LONGEST else None
    return language is not None and not _HINDERS[language].search(text) and not _HINDERS_ANYWHERE.search(text)


def verdicts_abroad(text: str) -> set[str]:
    """The verdicts, "0" factual and "1" hallucinated, that words of other languages name."""
    verdicts = set()
    for copula in _SAYS_OF_IT.finditer(text):
        verdicts.add("1" if _BAD.match(text, copula.end()) else "0" if _GOOD.match(text, copula.end()) else "")
    english = {name.casefold() for name in _IN_ENGLISH.findall(text)}
    verdicts |= {{"factual": "0", "hallucinated": "1"}[name] for name in english}
    return verdicts - {""}


_CONTRASTS = re.compile(
    r"\b(?:aber|jedoch|allerdings|sondern|mais|cependant|toutefois|pero|aunque|embargo|sino|ma|però|tuttavia|mas|porém"
    r"|maar|echter)\b|但|却|卻|然而|しかし|ただ|하지만|그러나",
    re.IGNORECASE,
)


def contrasts_abroad(text: str) -> bool:
    """Whether a text of another language has a word such as "but".

    Example:
        >>> contrasts_abroad("Oui, mais non."), contrasts_abroad("Oui.")
        (True, False)
    """
    return _CONTRASTS.search(text) is not None


_NOT_THERE = re.compile(
    r"(?:es gibt|man sieht|zu sehen ist|ich sehe)(?: \w+){0,3} kein\w*\b"
    r"|(?:assenza d[i']|absence d[e']|aus[eê]ncia de|afwezigheid van)"
    r"|kein\w* (?:nachweis|hinweis|anzeichen|zeichen)\b"
    r"|il n'y a (?:pas|aucune?)\b|(?:je ne vois|on ne voit)(?: \w+){0,2} (?:pas|aucune?)\b|aucune? \w+ n'est visible"
    r"|no (?:hay|se (?:observan?|ven?|aprecian?|identifican?))\b|no veo\b"
    r"|n[ãa]o (?:h[áa]|vejo|se observa\w*)\b|non (?:c'[èe]|ci sono|vedo|si vedono?)\b"
    r"|er (?:is|zijn) geen\b|nie ma\b|nie widać\b|(?:nikogo|niczego) nie ma\b|yok\b|không (?:có|thấy)\b"
    r"|tidak (?:ada|terlihat|tampak)\b|لا (?:يوجد|توجد|أرى)(?!\w)|मौजूद नहीं"
    r"|нет(?!\w)|не (?:видно|выявлено|обнаружено|вижу)(?!\w)|немає(?!\w)",
    re.IGNORECASE,
)
_NOT_THERE_BEHIND = re.compile(
    r"(?:нет|не (?:видно|выявлено|обнаружено|определяется)|nie ma|görünmüyor|yok|bulunmuyor|없습니다|없음"
    r"|보이지 않습니다"
    r"|ありません|認めません|見られません|नहीं है)\Z"
)
_TURNS = re.compile(
    r"\b(?:sino|dudas?|dúvidas?|doute|que|qu|qui|si|só|s[oó]lo|solamente|apenas|seulement|nur|sondern|mais|mas|ma|aber"
    r"|bien|mehr|plus|m[aá]s|otr[oa]s?|outr[oa]s?|autres?|altr[oaie]|ander\w*|alleen|maar|tylko|ale|zweifel|dubbi[oi]|sadece"
    r"|başka|ama|chỉ|nhưng|khác|hanya|tetapi|lain|se|ob|czy|только|лишь|но|сомнен\w*|другого|ли|тільки|але)\b"
    r"|लेकिन|सिर्फ|केवल|شك|فقط|إلا|لكن|だけ|しか|만"
)
"""Words with which a denial may be none, or one of something else."""

_ONLY_DENIED = 90


def denies_abroad(text: str) -> bool:
    """Whether a short sentence of another language says of one thing that it is not there, and no more.

    What thing that is is not known: where somebody asked if something is there, it is most likely that.

    Example:
        >>> denies_abroad("Il n'y a pas d'horloge au mur."), denies_abroad("Il n'y a pas de chat, mais un chien.")
        (True, False)
    """
    sentence = text.strip().rstrip(".!。")
    if len(sentence) > _ONLY_DENIED or re.search(r"[.!?;:,\n]", sentence) or _TURNS.search(sentence.casefold()):
        return False
    denial = _NOT_THERE.match(sentence)
    return denial is not None or _NOT_THERE_BEHIND.search(sentence) is not None


_CLAUSE = re.compile(r"[.!?;:,\n]+|\s[-\u2013\u2014]\s")


def restated(text: str, question: str, also: frozenset[str] = frozenset()) -> set[str]:
    """Yes or no, where a clause says back or denies what was asked, in its words and no others but those of grammar.

    Args:
        text: of the reply.
        question: as it was asked, in any language.
        also: words of the question that say nothing.

    Example:
        >>> restated("En la imagen no aparece ningún perro.", "¿Hay un perro en la imagen?")
        {'no'}
        >>> restated("Hay un perro negro.", "¿Hay un perro en la imagen?")
        set()
    """
    if _BY_SCRIPT.search(question):
        return _restated_in_chinese(text, question)
    language = language_of(text)
    if language not in _GRAMMAR or len(text) > _LONGEST:
        return set()
    neutral_words = _GRAMMAR[language] | also
    question_words = _WORD.findall(question.casefold())
    topic = {
        word
        for word in question_words
        if len(word) > 1 and word not in neutral_words and not any(word in words for words in _GRAMMAR.values())
    }
    if not topic or _DENYING & set(question_words):
        return set()
    answers = set()
    for clause in _CLAUSE.split(text.casefold()):
        words = set(_WORD.findall(clause))
        if turned(question_words, _WORD.findall(clause), topic):
            return set()
        if topic <= words and not words - topic - neutral_words - _DENYING:
            denied = [word for word in _WORD.findall(clause) if word in _DENYING]
            if len(denied) != len(set(denied)) or (language in ("de", "nl") and len(denied) > 1):
                return set()
            answers.add("no" if denied else "yes")
    return answers


# "肝脏是否正常", "有没有占位性病变", "是否存在骨折", "有骨折吗"
_ASKED = re.compile(
    r"(?P<has>有没有|有沒有|有无|有無|是否有|是否存在|是否可见|是否可見)(?P<what>[^，,。?？]+?)[吗嗎?？。\s]*\Z"
    r"|是否(?P<is>[^，,。?？]+?)[吗嗎?？。\s]*\Z|(?<![没沒])(?P<there>有|存在)(?P<one>[^，,。?？]+?)[吗嗎][?？。\s]*\Z"
)
_CLAUSE_ZH = re.compile(r"[，,。；;.!！?？\n]")
_NO_ZH = re.compile(r"未见|未見|未发现|未發現|没有|沒有|不存在|无|無|没|沒|不|未|非")
_HAS_ZH = re.compile(r"有|存在|可见|可見|见|見|显示|顯示|提示|发现|發現")
_ENDS_ZH = re.compile(r"\s*(?:的?(?:征象|表现|迹象|改变|病变|現象|现象)|存在)?\s*\Z")
_OPEN_ZH = re.compile(
    r"可能|疑似|考虑|考慮|或|排除|难以|難以|无法|無法|不能|不清|但|若|如果|不完全|不太|不一定|不确定|不確定"
)


def _restated_in_chinese(text: str, question: str) -> set[str]:
    question_parts = _ASKED.search(question.strip())
    if question_parts is None or _OPEN_ZH.search(text):
        return set()
    what = (question_parts["what"] or question_parts["is"] or question_parts["one"]).strip()
    answers = set()
    for clause in _CLAUSE_ZH.split(text):
        before, subject, after = clause.partition(what)
        if not subject or not _ENDS_ZH.match(after):
            continue
        near = before[-8:]
        if len(_NO_ZH.findall(near)) == 1:
            answers.add("no")
        elif not _NO_ZH.search(clause) and (question_parts["is"] or _HAS_ZH.search(near)):
            answers.add("yes")
    return answers
